WITH c AS (UPDATE least SET state = 1, started_at = now() WHERE id IN (SELECT id FROM least WHERE state = 0 AND run_at <= now() ORDER BY priority, id LIMIT 100 FOR UPDATE SKIP LOCKED) RETURNING id) SELECT string_agg(id::text, ',') AS ids FROM c \gset
UPDATE least SET state = 2, ended_at = now() WHERE id IN (:ids);
