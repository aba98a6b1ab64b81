/** Texts of JSON, and the three numbers that Python's json module writes although JSON has no words for them. */
const WORDS = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

/**
 * Parses JSON as Python reads it: a byte order mark before it is left out, Infinity and -Infinity are numbers. NaN becomes null.
 * @throws SyntaxError
 */
export function parsePythonJson(text: string): unknown {
  const json = text.startsWith('\ufeff') ? text.slice(1) : text;
  try {
    return JSON.parse(json);
  } catch (error) {
    const plain = json.replace(WORDS, (word) =>
      word.startsWith('"') ? word : word === 'NaN' ? 'null' : word.replace('Infinity', '1e999'),
    );
    if (plain === json) throw error;
    return JSON.parse(plain);
  }
}
