/** Client for Wakebell: durable timers, queues and FIFO locks over gRPC. */
export { Client, type ClientOptions } from "./client.js";
export * from "./errors.js";
export type { TLSOptions } from "./session.js";
export { Subscription, type Handler, type SubscribeOptions } from "./subscription.js";
export { Turn, type TurnOptions } from "./turn.js";
export type * from "./types.js";
export { json, text, value } from "./values.js";
export { verify, type WebhookHeaders } from "./webhook.js";
