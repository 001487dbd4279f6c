CREATE TABLE IF NOT EXISTS {table} (
    seq         bigint       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    request_key char(32)     NOT NULL, -- of the request in Redis
    stream      char(32)     NOT NULL, -- rows of one stream are relayed in their order
    kind        varchar(16)  NOT NULL, -- schedule, cancel or publish
    target      varchar(512) NOT NULL, -- topic or queue, for people
    timer       varchar(512) NOT NULL, -- id of the timer, for people
    body        longblob     NOT NULL, -- the request, as protobuf
    created_at  bigint       NOT NULL, -- microseconds since 1970, as all instants
    retry_at    bigint       NOT NULL DEFAULT 0,
    attempts    int          NOT NULL DEFAULT 0,
    failed_at   bigint       NULL,     -- set aside; null: waits
    error       text         NULL,
    INDEX {name}_waiting (failed_at, seq),
    INDEX {name}_stream (stream, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;
