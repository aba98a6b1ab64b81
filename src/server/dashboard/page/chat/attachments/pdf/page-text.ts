/** A piece of the text of a page, as pdf.js finds them. */
interface TextItem {
  str: string;
  /** True where a line ends after it. */
  hasEOL: boolean;
}

/** The text of a page, of its pieces in their order. */
export function joinedItems(items: readonly TextItem[]): string {
  const text = items.map(({ str, hasEOL }) => (hasEOL ? `${str}\n` : str)).join('');
  // Fonts that name no characters leave zeros.
  return text
    .replaceAll('\0', '')
    .replace(/[ \t]+$/gm, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
}

/** The texts of pages one after the other, without those that have none. */
export const joinedPages = (texts: readonly string[]): string => texts.filter(Boolean).join('\n\n');
