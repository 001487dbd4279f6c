// All tests in one process, because each takes addresses for its nodes from one list.
import "./timers.test.js";
import "./subscribe.test.js";
import "./handlers.test.js";
import "./joins.test.js";
import "./others.test.js";
import "./rights.test.js";
import "./bounds.test.js";
import "./webhook.test.js";
import "./readme.test.js";
