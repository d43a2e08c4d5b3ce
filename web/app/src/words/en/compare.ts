/** Two versions of a file beside each other. */
export const compare = {
  action: 'Compare',
  of: (name: string) => `Versions of “${name}” compared`,
  comparing: 'Comparing …',
  between: (before: string, after: string) => `From ${before} to ${after}.`,
  same: (before: string, after: string) => `${before} and ${after} are the same.`,
  cut: (size: string) => `Only the first ${size} of each are compared.`,
  tooDifferent: 'The two differ too much to be compared line by line.',
  removed: 'Removed: ',
  added: 'Added: ',
  more: (rows: number) => `Show more, ${rows} are left`,
  folded: (lines: number) => `Show ${lines} lines that are the same`,
};
