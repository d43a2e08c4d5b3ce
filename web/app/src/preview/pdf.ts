// PDF files as pictures of their pages and as their texts. What a file would run is not run, and nothing is asked of anybody else.

import { trustedStarter } from '@syncline/core/trusted';
import { getDocument, PDFWorker, type PDFDocumentProxy } from 'pdfjs-dist';
import address from './pdf-worker.ts?worker&url';

export type { PDFDocumentProxy, PDFPageProxy } from 'pdfjs-dist';

/** What some files need besides: how signs of Chinese, Japanese and Korean are told, and how two kinds of pictures are packed. */
const needed = import.meta.glob<string>(
  [
    '../../../node_modules/pdfjs-dist/cmaps/*.bcmap',
    '../../../node_modules/pdfjs-dist/wasm/{jbig2,openjpeg}.wasm',
  ],
  { query: '?url', import: 'default', eager: true },
);

const byName = new Map(Object.entries(needed).map(([path, url]) => [path.split('/').at(-1), url]));

/** Gets what the worker asks for; it asks for nothing by an address of its own. */
class Needed {
  async fetch({ filename }: { filename: string }): Promise<Uint8Array<ArrayBuffer>> {
    const url = byName.get(filename);
    if (url === undefined) throw new Error(`${filename} is not part of the app`);
    const response = await fetch(url);
    if (!response.ok) throw new Error(`${filename} did not come: ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  }
}

const start = trustedStarter('syncline-pdf', [address]);

/** A file that is open, until it is closed. */
export interface OpenPdf {
  document: PDFDocumentProxy;
  close: () => void;
}

/** Opens a file in a worker of its own; throws where it is none, or wants a password. */
export async function openPdf(data: Uint8Array<ArrayBuffer>): Promise<OpenPdf> {
  const port = start(address, 'syncline pdf');
  const worker = PDFWorker.create({ port });
  const task = getDocument({
    data,
    worker,
    BinaryDataFactory: Needed,
    useWorkerFetch: false,
    disableWorkerRendering: true,
    enableXfa: false,
    verbosity: 0,
  });
  const close = () => {
    void task.destroy().finally(() => {
      worker.destroy();
      port.terminate();
    });
  };
  try {
    return { document: await task.promise, close };
  } catch (error) {
    close();
    throw error;
  }
}
