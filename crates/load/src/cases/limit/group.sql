-- What a sync service writes for a group of commits, in one transaction and as many statements: an entry of 608 bytes for each, the
-- version of one of eight nodes, the end of the log. What it reads and decides before that is left out. Each client has workspaces of its
-- own, so that nobody waits for a row.
\set first :client_id * 1000 + random(1, 1001 - :group)
\set last :first + :group - 1
BEGIN;
INSERT INTO entries (workspace, seq, op_id, device, hash, bytes)
SELECT number, head_seq + 1, decode(md5(number::text || '.' || head_seq::text), 'hex'), id,
       decode(repeat(md5(head_seq::text), 2), 'hex'), decode(repeat(md5(number::text || '.' || head_seq::text), 38), 'hex')
FROM workspaces WHERE number BETWEEN :first AND :last;
INSERT INTO node_versions (workspace, node, version)
SELECT number, decode(md5((head_seq % 8)::text), 'hex'), 1
FROM workspaces WHERE number BETWEEN :first AND :last
ON CONFLICT (workspace, node) DO UPDATE SET version = node_versions.version + 1;
UPDATE workspaces SET head_seq = head_seq + 1, head_hash = decode(repeat(md5(head_seq::text), 2), 'hex'),
       used_bytes = used_bytes + 608
WHERE number BETWEEN :first AND :last;
COMMIT;
