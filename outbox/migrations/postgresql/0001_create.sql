CREATE TABLE IF NOT EXISTS {table} (
    seq         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    request_key text   NOT NULL, -- of the request in Redis
    stream      text   NOT NULL, -- rows of one stream are relayed in their order
    kind        text   NOT NULL, -- schedule, cancel or publish
    target      text   NOT NULL, -- topic or queue, for people
    timer       text   NOT NULL, -- id of the timer, for people
    body        bytea  NOT NULL, -- the request, as protobuf
    created_at  bigint NOT NULL, -- microseconds since 1970, as all instants
    retry_at    bigint NOT NULL DEFAULT 0,
    attempts    int    NOT NULL DEFAULT 0,
    failed_at   bigint,          -- set aside; null: waits
    error       text
);

CREATE INDEX IF NOT EXISTS {name}_waiting ON {table} (seq) WHERE failed_at IS NULL;

CREATE INDEX IF NOT EXISTS {name}_stream ON {table} (stream, seq) WHERE failed_at IS NULL;
