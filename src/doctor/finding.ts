/** What `skein doctor` says of one part of the machine. */
export interface Finding {
  part: string;
  /** ok: as it should be; note: it works, and could be better or may surprise; wrong: something will fail. */
  state: 'ok' | 'note' | 'wrong';
  text: string;
  /** What to do about it. */
  advice?: string;
}

export const ok = (part: string, text: string): Finding => ({ part, state: 'ok', text });
export const note = (part: string, text: string, advice?: string): Finding => ({
  part,
  state: 'note',
  text,
  ...(advice !== undefined && { advice }),
});
export const wrong = (part: string, text: string, advice?: string): Finding => ({
  ...note(part, text, advice),
  state: 'wrong',
});
