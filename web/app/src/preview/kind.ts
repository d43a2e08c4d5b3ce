// Which files a page shows, and as what. The type of what is shown is from this table and from nothing that somebody wrote into a file or
// its name, so that nothing which could carry a script is ever shown as more than text.

const MIB = 1024 * 1024;

export type PreviewKind = 'image' | 'video' | 'audio' | 'pdf' | 'text' | 'markdown';

/** What is known of a file before it is read. */
export interface Viewable {
  id: string;
  version: number;
  name: string;
  size: number | null;
}

export interface Previewed {
  kind: PreviewKind;
  /** What the browser is told that it is. */
  type: string;
  /** Larger ones are not loaded into the page. */
  sizeMax: number;
}

/** How much of a text is shown. */
export const TEXT_SHOWN_MAX = MIB / 2;

const TYPES: [PreviewKind, number, Record<string, string>][] = [
  [
    'image',
    64 * MIB,
    {
      avif: 'image/avif',
      bmp: 'image/bmp',
      gif: 'image/gif',
      jpeg: 'image/jpeg',
      jpg: 'image/jpeg',
      png: 'image/png',
      webp: 'image/webp',
    },
  ],
  ['video', 512 * MIB, { mp4: 'video/mp4', m4v: 'video/mp4', webm: 'video/webm' }],
  [
    'audio',
    512 * MIB,
    {
      aac: 'audio/aac',
      flac: 'audio/flac',
      m4a: 'audio/mp4',
      mp3: 'audio/mpeg',
      ogg: 'audio/ogg',
      opus: 'audio/ogg',
      wav: 'audio/wav',
    },
  ],
  ['pdf', 64 * MIB, { pdf: 'application/pdf' }],
  ['markdown', Infinity, { md: '', markdown: '' }],
];

/** Of what these are only the text is shown; pages and drawings with scripts are among them. */
const TEXTS =
  'bat bib c cfg conf cpp cs css csv diff go h hpp htm html ini ics java js json jsonl jsx kt less log lua mjs patch php pl ps1 py r rb ' +
  'rs rst rtf scss sh sql srt svelte svg swift tex toml ts tsv tsx txt vcf vue xhtml xml yaml yml';

const byEnding = new Map<string, Previewed>();
for (const [kind, sizeMax, types] of TYPES) {
  for (const [ending, type] of Object.entries(types)) byEnding.set(ending, { kind, type, sizeMax });
}
for (const ending of TEXTS.split(' ')) {
  byEnding.set(ending, { kind: 'text', type: '', sizeMax: Infinity });
}

/** As what a file is shown, if it is. */
export function previewOf(name: string, size: number | null): Previewed | null {
  const dot = name.lastIndexOf('.');
  const found = dot < 0 ? undefined : byEnding.get(name.slice(dot + 1).toLowerCase());
  return found && (size ?? 0) <= found.sizeMax ? found : null;
}
