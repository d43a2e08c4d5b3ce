import { NoConnection, type FileAnswer } from '@syncline/api';

export interface Text {
  text: string;
  /** Whether there is more of it. */
  isCut: boolean;
  /** Whether it looks like no text at all. */
  isBinary: boolean;
}

type OnProgress = (received: number) => void;

async function* chunksOf({ body }: FileAnswer): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Reads all of a file, as what the page says that it is. */
export async function readBlob(
  answer: FileAnswer,
  type: string,
  onProgress: OnProgress,
): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let received = 0;
  for await (const chunk of chunksOf(answer)) {
    parts.push(chunk);
    onProgress((received += chunk.length));
  }
  if (answer.size !== null && received !== answer.size) {
    throw new NoConnection('the answer broke off');
  }
  return new Blob(parts, { type });
}

/** Reads the beginning of a file as a text, and no more than that. */
export async function readText(answer: FileAnswer, lengthMax: number): Promise<Text> {
  const decoder = new TextDecoder();
  let text = '';
  let received = 0;
  let isCut = false;
  for await (const chunk of chunksOf(answer)) {
    const part = chunk.subarray(0, lengthMax - received);
    received += part.length;
    text += decoder.decode(part, { stream: true });
    isCut = part.length < chunk.length || (received === lengthMax && received !== answer.size);
    if (isCut) break;
  }
  // Of a text that was cut, the last sign may have been cut, too.
  if (!isCut) text += decoder.decode();
  return { text, isCut, isBinary: text.includes('\0') };
}
