INSERT INTO least (payload) SELECT jsonb_build_object('n', n, 'pad', repeat('x', 70)) FROM generate_series(1, 1000) AS n;
