import { getDocument, type PDFDocumentProxy } from 'pdfjs-dist/legacy/build/pdf.mjs';
// The part of pdf.js that reads files. It finds it here, and starts no worker of its own.
import 'pdfjs-dist/legacy/build/pdf.worker.mjs';
import { dataFactory } from './character-maps.js';
import { joinedItems, joinedPages } from './page-text.js';
import type { PdfAnswer, PdfQuestion } from './pdf-messages.js';

/**
 * Says the text of the first pages of a file, as many as it may.
 * @param loadMaps the file of CharacterMaps, for fonts that need it
 */
export async function readText(
  { data, maxPages, maxCharacters }: Omit<PdfQuestion, 'port'>,
  say: (answer: PdfAnswer) => void,
  loadMaps: () => Promise<ArrayBuffer>,
): Promise<void> {
  const document = await getDocument({
    data,
    BinaryDataFactory: dataFactory(loadMaps),
    // Nothing is drawn, so nothing is fetched for it, and no code is compiled.
    useWorkerFetch: false,
    useWasm: false,
    useSystemFonts: false,
    disableFontFace: true,
    isOffscreenCanvasSupported: false,
    isImageDecoderSupported: false,
    verbosity: 0,
  }).promise;
  const pages = document.numPages;
  const texts: string[] = [];
  let left = maxCharacters;
  while (texts.length < Math.min(pages, maxPages) && left > 0) {
    const text = await textOf(document, texts.length + 1);
    texts.push(text);
    left -= text.length;
    say({ kind: 'page', page: texts.length, pages: Math.min(pages, maxPages) });
  }
  say({ kind: 'text', text: joinedPages(texts), read: texts.length, pages });
}

async function textOf(document: PDFDocumentProxy, number: number): Promise<string> {
  const page = await document.getPage(number);
  const { items } = await page.getTextContent();
  page.cleanup();
  return joinedItems(items.filter((item) => 'str' in item));
}
