// A folder of the browser's own file system stands for a picked one: its handles are those of any folder.

import type { Page } from '@playwright/test';
import type { SynclineClient } from '@syncline/api';
import type { RealServer } from './server.ts';
import { expect } from './test.ts';

/** Has the page pick that folder whenever it asks for one. */
export async function givePicked(page: Page): Promise<void> {
  await page.addInitScript(() => {
    Object.assign(window, {
      showDirectoryPicker: async () =>
        (await navigator.storage.getDirectory()).getDirectoryHandle('picked', { create: true }),
    });
  });
}

/** How the app shows that folder among those that it keeps in sync. */
export const card = (page: Page) => page.getByRole('region', { name: 'picked ↔' });

/** Picks it for what is kept in sync with the folder of a workspace that is shown. */
export async function pick(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Choose a folder of this computer' }).click();
  await page.getByRole('button', { name: 'Begin' }).click();
  await expect(card(page)).toContainText('In sync, watching');
}

/** Has the folder of a workspace that is open kept in sync with it. */
export async function keepInSync(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Keep in sync' }).click();
  await pick(page);
}

let boxes = 0;

/** Makes a workspace of a test for itself, with a file and a folder, and has the page pick that folder for whatever it keeps in sync. */
export async function makeBox(
  page: Page,
  server: RealServer,
  ada: SynclineClient,
): Promise<{ workspace: string; name: string }> {
  const name = `Box${++boxes}`;
  server.addWorkspace('ada', name, { 'plan.txt': 'first', 'Letters/to bob.md': 'Dear Bob' });
  const workspace = (await ada.workspaces()).find((found) => found.name === name)?.id ?? '';
  await givePicked(page);
  return { workspace, name };
}

/** Writes a file of the picked folder, as a program would, or deletes it. */
export async function edit(
  page: Page,
  path: string,
  content: string | number[] | Buffer | null,
): Promise<void> {
  const isLarge = Buffer.isBuffer(content);
  await page.evaluate(
    async ([path, content, isLarge]) => {
      const root = await navigator.storage.getDirectory();
      let folder = await root.getDirectoryHandle('picked', { create: true });
      const names = path.split('/');
      const last = names.pop() ?? '';
      for (const one of names) folder = await folder.getDirectoryHandle(one, { create: true });
      if (content === null) return folder.removeEntry(last, { recursive: true });
      const writable = await (await folder.getFileHandle(last, { create: true })).createWritable();
      const bytes = (text: string) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
      const text = typeof content === 'string' ? content : null;
      if (text !== null) await writable.write(isLarge ? bytes(text) : text);
      else await writable.write(new Uint8Array(content as number[]));
      await writable.close();
    },
    [path, isLarge ? content.toString('base64') : content, isLarge] as const,
  );
}

/** What is in the picked folder: paths and texts. */
export function look(page: Page): Promise<Record<string, string>> {
  return page.evaluate(async () => {
    const found: Record<string, string> = {};
    const walk = async (folder: FileSystemDirectoryHandle, before: string): Promise<void> => {
      for await (const [name, handle] of folder.entries()) {
        if (handle.kind === 'directory') await walk(handle, `${before}${name}/`);
        // What is on its way may be in its place by now.
        else if (name.startsWith('part-')) found[before + name] = '';
        else found[before + name] = (await (await handle.getFile()).text()).slice(0, 100);
      }
    };
    const root = await navigator.storage.getDirectory();
    // It is looked at while it is written to.
    await walk(await root.getDirectoryHandle('picked'), '').catch(() => (found['?'] = ''));
    return found;
  });
}

/** The beginning of a file on the server; nothing where none is, or none any more once its content is asked for. */
export async function textOf(
  client: SynclineClient,
  workspace: string,
  path: string,
): Promise<string | null> {
  if (!(await client.node(workspace, path))) return null;
  try {
    const { body } = await client.file(workspace, path);
    return (await new Response(body).text()).slice(0, 100);
  } catch (error) {
    if (await client.node(workspace, path)) throw error;
    return null;
  }
}
