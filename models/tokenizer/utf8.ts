/**
 * Number of bytes of bytes[0, length) that can be turned into text now: all but an unfinished character at the end that
 * further bytes could still complete. Bytes that can never become a character count as decodable (to U+FFFD).
 *
 *   .. .. E4 B8 | AD      the last two wait for the third
 *   .. .. E4 41           E4 can no longer complete: everything is decodable
 */
export function decodableUtf8Length(bytes: Uint8Array, length: number): number {
  for (let back = 1; back <= 3 && back <= length; back++) {
    const lead = bytes[length - back]!;
    if (lead < 0x80) return length;
    if (lead < 0xc0) continue;
    const wanted = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || back >= wanted) return length;
    return back === 1 || secondByteFits(lead, bytes[length - back + 1]!) ? length - back : length;
  }
  return length;
}

/**
 * True where the second byte fits: overlong forms, surrogates and code points above U+10FFFF show in it (Unicode, table
 * 3-7).
 */
function secondByteFits(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second < 0x90;
  return true;
}
