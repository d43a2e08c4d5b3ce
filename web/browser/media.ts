// Sound and films for tests, made here.

import type { Page } from '@playwright/test';

const SAMPLES_PER_SECOND = 8_000;

/** A track on which nothing is heard. */
export function silence(seconds: number): Blob {
  const data = Buffer.alloc(seconds * SAMPLES_PER_SECOND, 128);
  const head = Buffer.alloc(44);
  head.write('RIFF');
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  for (const [value, at] of [
    [1, 20],
    [1, 22],
    [1, 32],
    [8, 34],
  ] as const)
    head.writeUInt16LE(value, at);
  head.writeUInt32LE(SAMPLES_PER_SECOND, 24);
  head.writeUInt32LE(SAMPLES_PER_SECOND, 28);
  head.write('data', 36);
  head.writeUInt32LE(data.length, 40);
  return new Blob([head, data]);
}

/** A film that the browser makes: a bar that goes over the sky. */
export async function filmOf(page: Page, width: number, height: number): Promise<Blob> {
  const text = await page.evaluate(
    async ([wide, high]) => {
      const canvas = document.createElement('canvas');
      [canvas.width, canvas.height] = [wide, high];
      const drawing = canvas.getContext('2d');
      const recorder = new MediaRecorder(canvas.captureStream(25), { mimeType: 'video/webm' });
      const parts: Blob[] = [];
      recorder.ondataavailable = ({ data }) => void parts.push(data);
      const isOver = new Promise((resolve) => (recorder.onstop = resolve));
      recorder.start();
      for (let frame = 0; frame < 15; frame++) {
        if (drawing) {
          drawing.fillStyle = '#3a688c';
          drawing.fillRect(0, 0, wide, high);
          drawing.fillStyle = '#f4c48c';
          drawing.fillRect((frame * wide) / 16, high / 3, wide / 16, high / 3);
        }
        await new Promise((resolve) => setTimeout(resolve, 40));
      }
      recorder.stop();
      await isOver;
      const bytes = new Uint8Array(await new Blob(parts).arrayBuffer());
      return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
    },
    [width, height] as const,
  );
  return new Blob([Buffer.from(text, 'base64')]);
}
