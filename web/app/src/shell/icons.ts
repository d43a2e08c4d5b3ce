const PAGE = 'M5 2.5h6.5L15.5 6.5v11h-10.5zM11.5 2.5v4h4';

/** Drawn on 20 by 20, as lines. */
export const ICONS = {
  file: PAGE,
  text: `${PAGE}M7.5 10h5.5M7.5 13h5.5`,
  image: 'M3 4h14v12h-14zM3 14l4-4 3.5 3.5 2.5-2.5 4 4M12.8 7.7v.1',
  media: 'M3 4h14v12h-14zM8.5 7.5v5l4-2.5z',
  archive: `${PAGE}M9 3v1.5M9 6.5v1.5M9 10v1.5M8 13.5h2v2h-2z`,
  folder: 'M2.5 5.5v10.5h15v-8.5h-8l-2-2.5h-5z',
  link: 'M8.5 11.5a3 3 0 0 0 4.3 0l3-3a3 3 0 0 0-4.3-4.3l-1 1M11.5 8.5a3 3 0 0 0-4.3 0l-3 3a3 3 0 0 0 4.3 4.3l1-1',
  workspace: 'M2.5 5.5v10.5h15v-8.5h-8l-2-2.5h-5zM6 13c2.5 0 2-2.5 4-2.5s1.5 2.5 4 2.5',
  lock: 'M4.5 9h11v8h-11zM7 9v-2.5a3 3 0 0 1 6 0v2.5',
  upload: 'M10 13v-9M6 7.5l4-4 4 4M3.5 13v3.5h13v-3.5',
  'upload-folder': 'M2.5 5.5v10.5h15v-8.5h-8l-2-2.5h-5zM10 14v-4M8 11.5l2-2 2 2',
  download: 'M10 3.5v9M6 9l4 4 4-4M3.5 13v3.5h13v-3.5',
  'new-folder': 'M2.5 5.5v10.5h15v-8.5h-8l-2-2.5h-5zM10 9.5v4.5M7.7 11.7h4.6',
  rename: 'M3.5 16.5l.8-3.5 8.7-8.7 2.7 2.7-8.7 8.7zM11.5 5.8l2.7 2.7',
  trash: 'M3.5 5.5h13M8 5.5v-2h4v2M5 5.5l.8 11.5h8.4l.8-11.5M8.5 8.5v5.5M11.5 8.5v5.5',
  history: 'M3.5 6v3.5h3.5M3.7 9.3a6.5 6.5 0 1 1 .3 3M10 6.5v4l2.5 1.5',
  close: 'M5 5l10 10M15 5l-10 10',
  help: 'M10 17a7 7 0 1 1 0-14 7 7 0 0 1 0 14zM8 8.2a2 2 0 1 1 2.8 1.8q-.8.4-.8 1.5M10 13.8v.1',
  settings: 'M3 6h8M15 6h2M13 4v4M3 14h2M9 14h8M7 12v4',
  'sign-out': 'M8 3.5h-4.5v13h4.5M8 10h9M13.5 6.5l3.5 3.5-3.5 3.5',
  retry: 'M16.5 6v3.5h-3.5M16.3 9.3a6.5 6.5 0 1 0-.3 3',
  up: 'M10 16v-12M5.5 8.5l4.5-4.5 4.5 4.5',
  down: 'M5 8l5 5 5-5',
} as const;

export type IconName = keyof typeof ICONS;
