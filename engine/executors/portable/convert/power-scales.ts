/** Greatest exponent with which all weights of MXFP4 are numbers of float32: 6 * 2 ** (252 - 127). */
export const MXFP4_EXPONENT = 252;
/** Greatest exponent that stands for a number. */
export const ANY_EXPONENT = 254;

/**
 * Refuses scales that are powers of 2 (E8M0) where one of them is no number, as 255 is, or makes weights that are none. Throws one sentence.
 *
 * @param step bytes from one scale to the next
 * @param what name of the tensor
 * @param placeOf byte of the file at which a scale lies, by its number
 */
export function checkPowers(
  bytes: Uint8Array,
  step: number,
  most: number,
  what: string,
  placeOf: (scale: number) => number,
  file: string,
): void {
  for (let at = 0; at < bytes.length; at += step) {
    if (bytes[at]! <= most) continue;
    throw new Error(
      `${file}: the scale of ${what} at byte ${placeOf(at / step)} should be an exponent from 0 to ${most}, with which weights are numbers, found ${bytes[at]}.`,
    );
  }
}
