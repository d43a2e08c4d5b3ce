import { expect, test } from 'vitest';
import { deviceName } from './device-name.ts';

test('a browser is called by its name and its system', () => {
  const chrome =
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36';
  expect(deviceName(chrome)).toBe('Chrome (Linux)');
  expect(deviceName(`${chrome} Edg/156.0`)).toBe('Edge (Linux)');
  expect(deviceName('Mozilla/5.0 (iPhone; like Mac OS X) Version/19.0 Safari/604.1')).toBe(
    'Safari (iOS)',
  );
  expect(deviceName('strange')).toBe('Browser');
});
