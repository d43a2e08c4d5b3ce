// PDF files for tests, written by hand.

/** What stands in the catalog, and what in the trailer, beside what has to be there. */
interface More {
  catalog?: string;
  trailer?: string;
}

/** A file with a page of each text. */
export function pdfOf(texts: readonly string[], { catalog = '', trailer = '' }: More = {}): Blob {
  const kids = texts.map((_, at) => `${4 + 2 * at} 0 R`).join(' ');
  const objects = [
    `<< /Type /Catalog /Pages 2 0 R ${catalog} >>`,
    `<< /Type /Pages /Kids [${kids}] /Count ${texts.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...texts.flatMap((text, at) => {
      const drawn = `0.1 0.4 0.9 rg 20 20 160 40 re f BT /F 24 Tf 20 120 Td (${text}) Tj ET`;
      const resources = '<< /Font << /F 3 0 R >> >>';
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] /Resources ${resources} /Contents ${5 + 2 * at} 0 R >>`,
        `<< /Length ${drawn.length} >>\nstream\n${drawn}\nendstream`,
      ];
    }),
  ];
  let text = '%PDF-1.7\n';
  const starts = objects.map((object, at) => {
    const start = text.length;
    text += `${at + 1} 0 obj\n${object}\nendobj\n`;
    return `${String(start).padStart(10, '0')} 00000 n \n`;
  });
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${starts.join('')}`;
  const root = `/Size ${objects.length + 1} /Root 1 0 R ${trailer}`;
  return new Blob([`${text}${table}trailer\n<< ${root} >>\nstartxref\n${text.length}\n%%EOF\n`]);
}
