// Names, sizes and times for people. Formatters are kept: making one is slow.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const kept = new Map<string, unknown>();

function keep<Formatter>(key: string, make: () => Formatter): Formatter {
  const found = kept.get(key) as Formatter | undefined;
  if (found) return found;
  const made = make();
  kept.set(key, made);
  return made;
}

/** What turns the direction of writing, or is no letter at all. */
const DECEIVING = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/**
 * A name for people: what would let it look like another one is written out, as the program does in a terminal. `a\u{202e}gpj.exe` would else be
 * read as a picture.
 */
export function shownName(name: string): string {
  return name.replace(DECEIVING, (sign) => `\\u{${(sign.codePointAt(0) ?? 0).toString(16)}}`);
}

/** A size with three digits that count, at most two of them behind the point. */
export function formatSize(bytes: number, locale: string): string {
  let unit = 0;
  let value = bytes;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  const options = { maximumFractionDigits: digits };
  const numbers = keep(`n ${locale} ${digits}`, () => new Intl.NumberFormat(locale, options));
  return `${numbers.format(value)} ${UNITS[unit]}`;
}

/** How long something takes, as people say it: roughly. */
export function formatDuration(seconds: number, locale: string): string {
  const say = (count: number, unit: 'second' | 'minute' | 'hour') => {
    const options = { style: 'unit', unit, unitDisplay: 'long' } as const;
    return keep(`u ${locale} ${unit}`, () => new Intl.NumberFormat(locale, options)).format(count);
  };
  if (seconds <= 55) return say(Math.max(5, Math.ceil(seconds / 5) * 5), 'second');
  const minutes = Math.max(1, Math.round(seconds / 60));
  if (minutes < 60) return say(minutes, 'minute');
  const hours = Math.floor(minutes / 60);
  const rest = minutes % 60;
  return hours >= 10 || rest === 0
    ? say(Math.round(minutes / 60), 'hour')
    : `${say(hours, 'hour')} ${say(rest, 'minute')}`;
}

/** A moment, in full. */
export function formatMoment(seconds: number, locale: string): string {
  const options = { dateStyle: 'medium', timeStyle: 'medium' } as const;
  const dates = keep(`m ${locale}`, () => new Intl.DateTimeFormat(locale, options));
  return dates.format(seconds * 1000);
}

const STEPS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** A moment as people say it: how long ago, or its day after a week. */
export function formatAgo(seconds: number, nowMs: number, locale: string): string {
  const passed = Math.floor(nowMs / 1000) - seconds;
  if (passed < -60 || passed >= 7 * 86_400) {
    const options = { dateStyle: 'medium' } as const;
    return keep(`d ${locale}`, () => new Intl.DateTimeFormat(locale, options)).format(
      seconds * 1000,
    );
  }
  const relative = keep(
    `r ${locale}`,
    () => new Intl.RelativeTimeFormat(locale, { numeric: 'auto' }),
  );
  const step = STEPS.find(([, length]) => passed >= length);
  if (!step) return relative.format(0, 'second');
  return relative.format(-Math.floor(passed / step[1]), step[0]);
}
