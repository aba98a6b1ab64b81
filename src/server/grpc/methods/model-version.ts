import { malformed } from '../../../serving/protocol/malformed.js';

const EXPECTED = 'version should be an integral value > 0';

/** The version that a request names; '': the latest. Words are Triton's. @throws InferError for what is no number above 0 */
export function versionOf(text: string): string {
  if (text === '' || /^[1-9]\d{0,17}$/.test(text)) return text;
  throw malformed(
    /^-?\d{1,18}$/.test(text)
      ? `invalid model version specified '${text}' , ${EXPECTED}`
      : `failed to get model version from specified version string '${text}' (details: stol), ${EXPECTED}`,
  );
}
