// Shows the built app on the server that SYNCLINE_SERVER names.
import { fileURLToPath } from 'node:url';
import { serve } from './serve.mjs';

const root = fileURLToPath(new URL('../dist', import.meta.url));
const server = process.env['SYNCLINE_SERVER'] ?? 'http://127.0.0.1:8470';
const { url } = await serve({ root, server, port: Number(process.env['PORT'] ?? 4173) });
console.log(`${url} shows the app of ${server}`);
