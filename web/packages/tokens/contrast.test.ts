import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const css = readFileSync(new URL('./tokens.css', import.meta.url), 'utf8');

/** All custom properties of the file, as they are written. */
const properties = new Map(
  [...css.matchAll(/^ {2}(--[\w-]+): ([^;]+);/gm)].map((found) => [found[1], found[2] ?? '']),
);

function colour(name: string, theme: 'light' | 'dark'): string {
  let value = properties.get(name);
  const pair = value && /^light-dark\((.+), (.+)\)$/.exec(value);
  if (pair) value = pair[theme === 'light' ? 1 : 2];
  const other = value && /^var\((.+)\)$/.exec(value)?.[1];
  if (other) return colour(other, theme);
  if (!value?.startsWith('#')) throw new Error(`${name} is no colour: ${value}`);
  return value;
}

function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
    const part = parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const surfaces = ['--bg-canvas', '--bg-raised', '--bg-hover', '--bg-selected'];
const texts = ['--fg-default', '--fg-muted', '--fg-accent', '--fg-danger', '--fg-ok'];

for (const theme of ['light', 'dark'] as const) {
  test(`every text is readable on every surface in the ${theme} theme`, () => {
    for (const surface of surfaces) {
      for (const text of texts) {
        const ratio = contrast(colour(text, theme), colour(surface, theme));
        expect(ratio, `${text} on ${surface}`).toBeGreaterThanOrEqual(4.5);
      }
    }
    for (const kind of ['accent', 'danger']) {
      const ratio = contrast(colour(`--fg-on-${kind}`, theme), colour(`--bg-${kind}`, theme));
      expect(ratio, `text on ${kind}`).toBeGreaterThanOrEqual(4.5);
    }
  });

  test(`controls and the focus ring stand out in the ${theme} theme`, () => {
    for (const name of ['--border-control', '--focus-ring', '--bg-accent']) {
      for (const surface of ['--bg-canvas', '--bg-raised']) {
        const ratio = contrast(colour(name, theme), colour(surface, theme));
        expect(ratio, `${name} on ${surface}`).toBeGreaterThanOrEqual(3);
      }
    }
  });
}
