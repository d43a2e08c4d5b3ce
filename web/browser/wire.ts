// What a page sends, to be looked through for what nobody else may read.

import type { Page } from '@playwright/test';

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
