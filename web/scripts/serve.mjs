// Serves built files with the headers of security-headers.json, and passes `/api` on to a server of Syncline.
import { readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import { extname, join, normalize } from 'node:path';

const { headers, 'cache-control': caching } = JSON.parse(
  await readFile(new URL('../security-headers.json', import.meta.url), 'utf8'),
);

/** @type {Record<string, string>} */
const TYPES = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.wasm': 'application/wasm',
};

/**
 * @param {import('node:http').IncomingMessage} incoming
 * @param {import('node:http').ServerResponse} outgoing
 * @param {string} server
 */
function passOn(incoming, outgoing, server) {
  const asked = request(
    new URL(incoming.url ?? '/', server),
    { method: incoming.method ?? 'GET', headers: incoming.headers },
    (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
      // What broke off there breaks off here.
      answer.on('close', () => answer.complete || outgoing.destroy());
    },
  );
  asked.on('error', () => {
    if (!outgoing.headersSent) outgoing.writeHead(502);
    outgoing.end();
  });
  outgoing.on('close', () => asked.destroy());
  incoming.pipe(asked);
}

/**
 * @param {string} root
 * @param {string} path
 * @param {import('node:http').ServerResponse} outgoing
 */
async function sendFile(root, path, outgoing) {
  const name = normalize(path === '/' ? '/index.html' : path);
  try {
    const content = await readFile(join(root, name));
    const cache = Object.keys(caching).find((start) => path.startsWith(start)) ?? '/';
    outgoing.writeHead(200, {
      ...headers,
      'cache-control': caching[cache],
      'content-type': TYPES[extname(name)] ?? 'application/octet-stream',
    });
    outgoing.end(content);
  } catch {
    outgoing.writeHead(404, headers);
    outgoing.end();
  }
}

/**
 * Starts serving and returns the address.
 * @param {{ root: string, server?: string | undefined, port?: number }} options
 */
export async function serve({ root, server, port = 0 }) {
  const listener = createServer((incoming, outgoing) => {
    const path = decodeURIComponent((incoming.url ?? '/').split('?')[0] ?? '/');
    if (server && path.startsWith('/api/')) passOn(incoming, outgoing, server);
    else void sendFile(root, path, outgoing);
  });
  await new Promise((resolve) => listener.listen(port, '127.0.0.1', () => resolve(undefined)));
  const address = listener.address();
  const open = typeof address === 'object' && address ? address.port : port;
  const close = () => {
    listener.closeAllConnections();
    return new Promise((resolve) => listener.close(() => resolve(undefined)));
  };
  return { url: `http://127.0.0.1:${open}`, close };
}
