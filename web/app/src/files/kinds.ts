import type { Node } from '@syncline/api';
import type { IconName } from '../shell/icons.ts';

/** What a list shows of a node. */
export type Listed = Pick<
  Node,
  'kind' | 'name' | 'path' | 'size' | 'modified' | 'target' | 'is_conflict' | 'mounted'
>;

const FAMILIES: [IconName, string][] = [
  ['image', 'avif bmp gif heic ico jpeg jpg png psd svg tif tiff webp'],
  ['media', 'aac avi flac m4a mkv mov mp3 mp4 ogg opus wav webm'],
  [
    'text',
    'c cpp css csv doc docx html java js json md odt pdf py rs rtf sh tex toml ts txt xml yaml yml',
  ],
  ['archive', '7z bz2 gz rar tar tgz xz zip zst'],
];

const byEnding = new Map(
  FAMILIES.flatMap(([icon, endings]) =>
    endings.split(' ').map((ending) => [ending, icon] as const),
  ),
);

/** The picture of a node: of its kind, and for a file of the family of its ending. */
export function iconOf({ kind, name }: Pick<Node, 'kind' | 'name'>): IconName {
  if (kind !== 'file') return kind;
  return byEnding.get(name.slice(name.lastIndexOf('.') + 1).toLowerCase()) ?? 'file';
}
