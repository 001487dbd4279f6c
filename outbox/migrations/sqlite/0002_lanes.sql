-- lanes (topics and queues) that Redis refuses for now
CREATE TABLE IF NOT EXISTS {parked} (
    lane     integer PRIMARY KEY, -- retry_at of its rows in {table}, negative
    kind     text    NOT NULL,    -- of one of its rows, for people
    target   text    NOT NULL,    -- topic or queue, for people
    retry_at integer NOT NULL,    -- microseconds since 1970
    attempts integer NOT NULL,
    outage   integer NOT NULL,    -- 1: Redis did not answer
    error    text    NOT NULL
);

CREATE INDEX IF NOT EXISTS {name}_parked_due ON {parked} (retry_at);

CREATE INDEX IF NOT EXISTS {name}_ready ON {table} (retry_at, seq) WHERE failed_at IS NULL;

CREATE INDEX IF NOT EXISTS {name}_failed ON {table} (seq) WHERE failed_at IS NOT NULL;

DROP INDEX IF EXISTS {waiting};
