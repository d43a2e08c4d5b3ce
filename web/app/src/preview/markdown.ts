// Reads Markdown into parts that a component shows: headings, paragraphs, lists, quotes, code, rules, links. What is no Markdown here, and HTML above
// all, stays text.

export type Inline =
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'strong'; inside: Inline[] }
  | { kind: 'emphasis'; inside: Inline[] }
  | { kind: 'deleted'; inside: Inline[] }
  | { kind: 'link'; inside: Inline[]; address: string };

export type Block =
  | { kind: 'heading'; level: number; inside: Inline[] }
  | { kind: 'paragraph'; inside: Inline[] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'list'; isOrdered: boolean; start: number; items: Block[][] }
  | { kind: 'rule' };

/** Deeper than this, what is nested is text. */
const DEPTH_MAX = 8;

const FENCE = /^ {0,3}(```+|~~~+)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+/;
const RULE = /^ {0,3}([-*_])[ \t]*(\1[ \t]*){2,}$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|(\d{1,9})[.)])[ \t]+(?=\S)/;

/** Where a link may lead: to what a browser opens as a page, or as a letter. */
export function isHarmless(address: string): boolean {
  return /^(https?:\/\/|mailto:)/i.test(address);
}

const MARKS = [
  ['**', 'strong'],
  ['__', 'strong'],
  ['~~', 'deleted'],
  ['*', 'emphasis'],
  ['_', 'emphasis'],
] as const;

/** Reads what stands in a line. */
export function inlinesOf(text: string, depth = 0): Inline[] {
  const found: Inline[] = [];
  let plain = '';
  let at = 0;
  const take = (part: Inline, length: number) => {
    if (plain !== '') found.push({ kind: 'text', text: plain });
    plain = '';
    found.push(part);
    at += length;
  };
  while (at < text.length) {
    const part = depth < DEPTH_MAX ? partAt(text, at, depth) : null;
    if (part) {
      take(part[0], part[1]);
    } else {
      if (text[at] === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) at++;
      // All ticks that have no end at once: each would be looked for again.
      const length = Math.max(1, ticksAt(text, at));
      plain += text.slice(at, at + length);
      at += length;
    }
  }
  if (plain !== '') found.push({ kind: 'text', text: plain });
  return found;
}

/** How many ticks stand at a place. */
function ticksAt(text: string, at: number): number {
  let end = at;
  while (text[end] === '`') end++;
  return end - at;
}

/** What begins at a place, and how long it is. */
function partAt(text: string, at: number, depth: number): [Inline, number] | null {
  const sign = text[at] ?? '';
  if (!'`[*_~<h'.includes(sign)) return null;
  if (sign === '`') {
    const ticks = '`'.repeat(ticksAt(text, at));
    const end = text.indexOf(ticks, at + ticks.length);
    if (end < 0) return null;
    return [
      { kind: 'code', text: text.slice(at + ticks.length, end).trim() },
      end + ticks.length - at,
    ];
  }
  if (sign === '[' || sign === '<' || sign === 'h') return linkAt(text, at, depth);
  for (const [mark, kind] of MARKS) {
    if (!text.startsWith(mark, at)) continue;
    const isInWord = sign === '_' && /\w/.test(text[at - 1] ?? '');
    const end = text.indexOf(mark, at + mark.length + 1);
    const inside = text.slice(at + mark.length, end);
    if (isInWord || end < 0 || /^\s|\s$/.test(inside)) continue;
    return [{ kind, inside: inlinesOf(inside, depth + 1) }, end + mark.length - at];
  }
  return null;
}

function linkAt(text: string, at: number, depth: number): [Inline, number] | null {
  const rest = text.slice(at, at + 4_096);
  const named = /^\[([^\]]+)\]\(<?([^\s()<>]+)>?(?:\s+"[^"]*")?\)/.exec(rest);
  if (named?.[1] !== undefined && named[2] !== undefined && isHarmless(named[2])) {
    const inside = inlinesOf(named[1], depth + 1);
    return [{ kind: 'link', inside, address: named[2] }, named[0].length];
  }
  const bare = /^<(https?:\/\/[^\s<>]+)>|^(https?:\/\/[^\s<>()]*[\w/])/.exec(rest);
  const address = bare?.[1] ?? bare?.[2];
  if (!bare || address === undefined) return null;
  return [{ kind: 'link', inside: [{ kind: 'text', text: address }], address }, bare[0].length];
}

/** Reads a text. */
export function blocksOf(text: string): Block[] {
  return blocksIn(text.replaceAll('\r\n', '\n').replaceAll('\t', '    ').split('\n'), 0);
}

function blocksIn(lines: string[], depth: number): Block[] {
  const found: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? '';
    if (line.trim() === '') {
      at++;
      continue;
    }
    const [block, count] =
      (depth < DEPTH_MAX ? nestedAt(lines, at, depth) : null) ?? simpleAt(lines, at);
    found.push(block);
    at += count;
  }
  return found;
}

/** A block that is no list and no quote, and how many lines it takes. */
function simpleAt(lines: string[], at: number): [Block, number] {
  const line = lines[at] ?? '';
  const fence = FENCE.exec(line)?.[1];
  if (fence !== undefined) {
    let end = at + 1;
    while (end < lines.length && !(lines[end] ?? '').trim().startsWith(fence)) end++;
    return [{ kind: 'code', text: lines.slice(at + 1, end).join('\n') }, end + 1 - at];
  }
  const heading = HEADING.exec(line);
  if (heading) {
    const inside = inlinesOf(withoutHashes(line.slice(heading[0].length)));
    return [{ kind: 'heading', level: heading[1]?.length ?? 1, inside }, 1];
  }
  if (RULE.test(line)) return [{ kind: 'rule' }, 1];
  let end = at + 1;
  while (end < lines.length && isGoingOn(lines[end] ?? '')) end++;
  const text = lines
    .slice(at, end)
    .map((one) => one.trim())
    .join('\n');
  return [{ kind: 'paragraph', inside: inlinesOf(text) }, end - at];
}

/** What a heading says, without the signs that may end it. */
function withoutHashes(text: string): string {
  let end = text.trimEnd().length;
  while (end > 0 && text[end - 1] === '#') end--;
  return text.slice(0, end).trimEnd();
}

function isGoingOn(line: string): boolean {
  return line.trim() !== '' && ![FENCE, HEADING, RULE, QUOTE, ITEM].some((one) => one.test(line));
}

/** A quote or a list, and how many lines it takes. */
function nestedAt(lines: string[], at: number, depth: number): [Block, number] | null {
  if (QUOTE.test(lines[at] ?? '')) {
    let end = at;
    while (end < lines.length && QUOTE.test(lines[end] ?? '')) end++;
    const inside = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
    return [{ kind: 'quote', blocks: blocksIn(inside, depth + 1) }, end - at];
  }
  const first = ITEM.exec(lines[at] ?? '');
  if (!first || RULE.test(lines[at] ?? '')) return null;
  const isOrdered = first[3] !== undefined;
  const items: string[][] = [];
  let end = at;
  let indent = 0;
  for (; end < lines.length; end++) {
    const line = lines[end] ?? '';
    const item = ITEM.exec(line);
    const isInside = line.startsWith(' '.repeat(indent)) && indent > 0;
    if (item && !isInside && (item[3] !== undefined) === isOrdered && !RULE.test(line)) {
      indent = item[0].length;
      items.push([line.slice(indent)]);
    } else if (isInside || (line.trim() === '' && goesOn(lines, end, indent, isOrdered))) {
      items.at(-1)?.push(line.slice(indent));
    } else if (line.trim() !== '' && isGoingOn(line) && (lines[end - 1] ?? '').trim() !== '') {
      items.at(-1)?.push(line.trim());
    } else break;
  }
  const blocks = items.map((item) => blocksIn(item, depth + 1));
  return [
    { kind: 'list', isOrdered, start: Number(first[3] ?? 1), items: blocks },
    Math.max(1, end - at),
  ];
}

/** Whether the list goes on after an empty line. */
function goesOn(lines: string[], at: number, indent: number, isOrdered: boolean): boolean {
  const next = lines[at + 1] ?? '';
  if (next.trim() === '') return false;
  const item = ITEM.exec(next);
  return next.startsWith(' '.repeat(indent)) || (!!item && (item[3] !== undefined) === isOrdered);
}
