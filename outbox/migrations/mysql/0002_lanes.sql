CREATE TABLE IF NOT EXISTS {parked} (
    lane     bigint       NOT NULL PRIMARY KEY, -- retry_at of its rows in {table}, negative
    kind     varchar(16)  NOT NULL, -- of one of its rows, for people
    target   varchar(512) NOT NULL, -- topic or queue, for people
    retry_at bigint       NOT NULL, -- microseconds since 1970
    attempts int          NOT NULL,
    outage   int          NOT NULL, -- 1: Redis did not answer
    error    text         NOT NULL,
    INDEX {name}_parked_due (retry_at)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4;

-- MySQL has no CREATE INDEX IF NOT EXISTS
SET @wakebell_step = IF(
    (SELECT COUNT(*) FROM information_schema.statistics
        WHERE table_schema = COALESCE(NULLIF('{schema}', ''), DATABASE()) AND table_name = '{name}' AND index_name = '{name}_ready') > 0,
    'DO 0',
    'ALTER TABLE {table} ADD INDEX {name}_ready (failed_at, retry_at, seq), ADD INDEX {name}_order (stream, failed_at, seq), DROP INDEX {name}_waiting, DROP INDEX {name}_stream');

PREPARE wakebell_step FROM @wakebell_step;

EXECUTE wakebell_step;

DEALLOCATE PREPARE wakebell_step;
