// A grid of files that stays quick with a hundred thousand rows, and that keyboards and screen readers can use. It knows rows by key and
// name; what a cell shows, and what a deed does, its user says.

export { default as FileGrid } from './FileGrid.svelte';
export { NOTHING, clear, selectAll, toggle } from './selection.ts';
export type { Selection } from './selection.ts';
export type { Column, Sorting } from './column.ts';
