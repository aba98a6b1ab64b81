const LATIN = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>';

/** A font that is not in the file, whose characters a map has that every reader of PDF files knows by this name. */
export const mappedFont = (map: string, ordering: string) => {
  const system = `/CIDSystemInfo << /Registry (Adobe) /Ordering (${ordering}) /Supplement 2 >>`;
  const descriptor = '/FontDescriptor << /Type /FontDescriptor /FontName /Some /Flags 4 >>';
  const inner = `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Some ${system} ${descriptor} >>`;
  return `<< /Type /Font /Subtype /Type0 /BaseFont /Some /Encoding /${map} /DescendantFonts [${inner}] >>`;
};

/**
 * A PDF file with a line of text on each page, as small as one can be.
 * @param isEncrypted says so, without a password that anybody has @param font in which lines are bytes in hexadecimal
 */
export function pdfOf(lines: readonly string[], isEncrypted = false, font = LATIN): Buffer {
  const kids = lines.map((_, index) => `${4 + 2 * index} 0 R`).join(' ');
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    `<< /Type /Pages /Kids [${kids}] /Count ${lines.length} >>`,
    font,
    ...lines.flatMap((line, index) => {
      const content =
        line === '' ? '' : `BT /F1 12 Tf 20 100 Td ${font === LATIN ? `(${line})` : `<${line}>`} Tj ET`;
      const resources = '/Resources << /Font << /F1 3 0 R >> >>';
      return [
        `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] ${resources} /Contents ${5 + 2 * index} 0 R >>`,
        `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
      ];
    }),
  ];
  let file = '%PDF-1.4\n';
  const offsets = objects.map((body, index) => {
    const offset = file.length;
    file += `${index + 1} 0 obj\n${body}\nendobj\n`;
    return `${String(offset).padStart(10, '0')} 00000 n \n`;
  });
  const hash = `<${'5a'.repeat(32)}>`;
  const encrypt = `/Encrypt << /Filter /Standard /V 1 /R 2 /O ${hash} /U ${hash} /P -4 >> /ID [<00> <00>]`;
  const trailer = `<< /Size ${objects.length + 1} /Root 1 0 R ${isEncrypted ? encrypt : ''} >>`;
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`;
  return Buffer.from(`${file}${table}trailer\n${trailer}\nstartxref\n${file.length}\n%%EOF\n`, 'latin1');
}
