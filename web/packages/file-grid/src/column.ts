export interface Column {
  id: string;
  label: string;
  /** Numbers stand at the end of their column. */
  isNumber?: boolean;
}

export interface Sorting {
  column: string;
  isDescending: boolean;
}
