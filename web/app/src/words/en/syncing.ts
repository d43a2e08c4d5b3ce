/** The way to folders that are kept in sync; what is said there comes with the page. */
export const syncing = {
  folders: 'Folders that this browser keeps in sync',
};
