// A QR code as the path of an SVG: squares of one unit, with the margin that readers want around it.

import { generate } from 'lean-qr/nano';

/** How many units are left free on each side. */
const MARGIN = 4;

export interface QrCode {
  /** How many units it is wide and high, margin included. */
  size: number;
  path: string;
}

export function qrOf(text: string): QrCode {
  const found = generate(text);
  let path = '';
  for (let y = 0; y < found.size; y++) {
    for (let x = 0; x < found.size; x++) {
      if (found.get(x, y)) path += `M${x + MARGIN} ${y + MARGIN}h1v1h-1z`;
    }
  }
  return { size: found.size + 2 * MARGIN, path };
}
