/** What the page asks its PDF worker: the text of a file. */
export interface PdfQuestion {
  /** For the answers: what pdf.js says for itself goes another way. */
  port: MessagePort;
  data: ArrayBuffer;
  maxPages: number;
  maxCharacters: number;
}

/** What the worker says: how far it is, and at the end the text, or why there is none. */
export type PdfAnswer =
  | { kind: 'page'; page: number; pages: number }
  | { kind: 'text'; text: string; read: number; pages: number }
  | { kind: 'encrypted' }
  | { kind: 'damaged' };
