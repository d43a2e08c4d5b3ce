/** How many bytes a body of a request has, of the kinds that the app sends. */
export function lengthOfBody(body: BodyInit | null | undefined): number {
  if (body instanceof Blob) return body.size;
  if (body instanceof Uint8Array) return body.byteLength;
  return typeof body === 'string' ? new Blob([body]).size : 0;
}
