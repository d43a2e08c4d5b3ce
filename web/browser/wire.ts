// What a page sends: how much it is, and to be looked through for what nobody else may read.

import type { Page, Request } from '@playwright/test';

/** Counts the bytes of the bodies that a page sends, as far as they are to be counted. */
export function countSent(page: Page, isCounted: (request: Request) => boolean = () => true) {
  const lengths: Promise<string | null>[] = [];
  page.on('requestfinished', (request) => {
    if (!isCounted(request)) return;
    const length = request.headerValue('content-length');
    // What is on its way when the page is closed fails nobody but who counts it.
    length.catch(() => undefined);
    lengths.push(length);
  });
  return {
    /** Returns how many they were since the last time, of what was answered. */
    take: async () => {
      const all = await Promise.all(lengths.splice(0));
      return all.reduce((sum, length) => sum + Number(length), 0);
    },
  };
}

/** Keeps all bodies and addresses that the page sends, as they leave it: what is a blob, the browser tells nobody later. */
export async function watchWire(page: Page): Promise<void> {
  await page.addInitScript(() => {
    const wire: Promise<Uint8Array>[] = [];
    Object.assign(globalThis, { wire });
    const plain = globalThis.fetch;
    globalThis.fetch = (input, init) => {
      const address = input instanceof Request ? input.url : String(input);
      if (address.includes('/workspaces')) {
        wire.push(Promise.resolve(new TextEncoder().encode(address)));
        wire.push(new Response(init?.body ?? '').bytes());
      }
      return plain(input, init);
    };
  });
}

/** How many bytes the page has sent, and which of these texts or bytes were in them. */
export async function looked(page: Page, plain: (string | Buffer)[]): Promise<[number, string[]]> {
  const kept = await page.evaluate(async () => {
    const all = await Promise.all((globalThis as unknown as { wire: Promise<Uint8Array>[] }).wire);
    const blob = new Blob(all as Uint8Array<ArrayBuffer>[]);
    return new Promise<string>((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(String(reader.result));
      reader.readAsDataURL(blob);
    });
  });
  const sent = Buffer.from(kept.slice(kept.indexOf(',') + 1), 'base64');
  return [sent.length, plain.filter((one) => sent.includes(one)).map(String)];
}
