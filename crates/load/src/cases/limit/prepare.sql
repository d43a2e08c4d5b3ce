-- Workspaces for the script beside this one: a thousand for each client, with the numbers 1 to 16,000.
INSERT INTO workspaces (id, owner, name, head_seq, head_hash, used_bytes, genesis)
SELECT decode(lpad(to_hex(n), 32, '0'), 'hex'), (SELECT min(id) FROM accounts), n::text, 0,
       decode(repeat('00', 32), 'hex'), 0, ''::bytea
FROM generate_series(1, 16000) AS n
ORDER BY n;
VACUUM ANALYZE workspaces;
