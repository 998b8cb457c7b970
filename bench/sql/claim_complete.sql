UPDATE least SET state = 1, started_at = now() WHERE id = (SELECT id FROM least WHERE state = 0 AND run_at <= now() ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id \gset
UPDATE least SET state = 2, ended_at = now() WHERE id = :id;
