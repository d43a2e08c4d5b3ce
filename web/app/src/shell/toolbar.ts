import type { IconName } from './icons.ts';

/** A button above what a page shows. */
export interface Deed {
  icon: IconName;
  label: string;
  run: () => void;
  isMain?: boolean;
  /** Whether its label is only heard: there is no room for all in one line, and rows must stay where they are. */
  isBrief?: boolean;
}
