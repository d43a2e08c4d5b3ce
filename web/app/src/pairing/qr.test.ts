import jsQR from 'jsqr';
import { expect, test } from 'vitest';
import { qrOf } from './qr.ts';

/** Draws squares of one unit as a picture of 4 by 4 pixels each. */
function drawn({ size, path }: ReturnType<typeof qrOf>): Uint8ClampedArray {
  const side = size * 4;
  const picture = new Uint8ClampedArray(side * side * 4).fill(255);
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)h1v1h-1z/g)) {
    for (let dot = 0; dot < 16; dot++) {
      const at = (Number(y) * 4 + (dot >> 2)) * side + Number(x) * 4 + (dot & 3);
      picture.fill(0, at * 4, at * 4 + 3);
    }
  }
  return picture;
}

test('a camera reads what was written', () => {
  for (const host of ['http://localhost', 'https://files.example.org:8443']) {
    const address = `${host}/#/pair/0123-4567-89AB-CDEF-GHJK-MNPQ-RSTV`;
    const code = qrOf(address);
    const side = code.size * 4;
    expect(jsQR(drawn(code), side, side)?.data).toBe(address);
    expect(code.path).toMatch(/^(M\d+ \d+h1v1h-1z)+$/);
  }
});
