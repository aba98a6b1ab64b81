/**
 * Keys of a JSON object's outermost level, including repeated ones, which JSON.parse drops. `text` must be valid JSON.
 */
export function outermostKeys(text: string): string[] {
  const keys: string[] = [];
  let depth = 0;
  let mayBeKey = false;
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],]/g;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [found] = match;
    if (found === '{' || found === '[') depth++;
    else if (found === '}' || found === ']') depth--;
    else if (found !== ',' && mayBeKey && depth === 1) keys.push(JSON.parse(found) as string);
    mayBeKey = depth === 1 && (found === '{' || found === ',');
  }
  return keys;
}
