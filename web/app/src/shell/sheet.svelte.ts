/** Whether the sheet of shortcuts is shown. */
export const sheet = $state({ isOpen: false });
