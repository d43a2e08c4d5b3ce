import type { Words } from '../en.ts';

/** Der Weg zu Ordnern, die im Gleichstand bleiben. */
export const syncing: Words['syncing'] = {
  folders: 'Ordner, die dieser Browser im Gleichstand hält',
};
