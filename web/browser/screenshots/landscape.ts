// A picture that nobody has the rights to: hills behind water, computed.

import { crc32, deflateSync } from 'node:zlib';

type Colour = readonly [number, number, number];

const SKY: Colour = [244, 196, 140];
const HIGH: Colour = [96, 142, 190];
const WATER: Colour = [58, 104, 140];

const mix = (one: Colour, other: Colour, part: number): Colour => [
  one[0] + (other[0] - one[0]) * part,
  one[1] + (other[1] - one[1]) * part,
  one[2] + (other[2] - one[2]) * part,
];

function colourAt(x: number, y: number): Colour {
  if (y > 0.68) return mix(WATER, SKY, 0.25 * Math.max(0, Math.sin(y * 160) - 0.4));
  if (Math.hypot((x - 0.7) * 1.5, y - 0.36) < 0.07) return [255, 236, 190];
  let colour = mix(HIGH, SKY, y / 0.68);
  for (const [place, height, waves, shade] of [
    [0.5, 0.07, 7, 0.35],
    [0.58, 0.05, 11, 0.6],
    [0.65, 0.03, 17, 0.85],
  ] as const) {
    const edge = place + height * Math.sin(x * waves + place * 20) * Math.cos(x * 3 + place);
    if (y > edge) colour = mix(SKY, [34, 58, 70], shade);
  }
  return colour;
}

function part(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data]);
  const whole = Buffer.alloc(body.length + 8);
  whole.writeUInt32BE(data.length);
  body.copy(whole, 4);
  whole.writeUInt32BE(crc32(body), body.length + 4);
  return whole;
}

/** Draws it as a PNG file. */
export function landscape(width: number, height: number): Blob {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const rows = Array.from({ length: height }, (_, y) => {
    const pixels = Array.from({ length: width }, (__, x) => colourAt(x / width, y / height));
    return Buffer.from([0, ...pixels.flat().map(Math.round)]);
  });
  const start = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const pixels = deflateSync(Buffer.concat(rows));
  const all = [start, part('IHDR', head), part('IDAT', pixels), part('IEND', Buffer.alloc(0))];
  return new Blob([Buffer.concat(all)]);
}
