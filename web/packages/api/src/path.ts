// Paths as the server writes them: percent-encoded, so that names of any bytes survive, with slashes between the names.

declare const encoded: unique symbol;

/** A path of a workspace, percent-encoded; the empty one is its root. */
export type NodePath = string & { [encoded]?: true };

export const ROOT: NodePath = '';

/** Encodes a name as the server does, so that two paths are equal as texts where they are equal. */
export function encodeName(name: string): NodePath {
  return encodeURIComponent(name).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** The path of something with that name in a folder. */
export function joinPath(folder: NodePath, name: string): NodePath {
  return folder === ROOT ? encodeName(name) : `${folder}/${encodeName(name)}`;
}

/** The name at the end of a path, for people: bytes that are no text are replaced. */
export function nameOf(path: NodePath): string {
  const last = path.slice(path.lastIndexOf('/') + 1);
  try {
    return decodeURIComponent(last);
  } catch {
    const bytes = Uint8Array.from(last.match(/%[0-9A-Fa-f]{2}|[^%]/g) ?? [], (part) =>
      part.length === 3 ? parseInt(part.slice(1), 16) : part.charCodeAt(0),
    );
    return new TextDecoder().decode(bytes);
  }
}

/** The folder around a path. */
export function parentOf(path: NodePath): NodePath {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

/** The folders from the first below the root to the path itself. */
export function partsOf(path: NodePath): NodePath[] {
  if (path === ROOT) return [];
  const names = path.split('/');
  return names.map((_, at) => names.slice(0, at + 1).join('/'));
}
