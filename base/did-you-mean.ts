/** Number of edits (insert, delete, replace, swap of neighbours) that turn one word into the other. */
function editDistance(left: string, right: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left[row - 1] === right[column - 1];
      let best = Math.min(
        previous[column]! + 1,
        current[column - 1]! + 1,
        previous[column - 1]! + (same ? 0 : 1),
      );
      const swapped =
        row > 1 && column > 1 && left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
      if (swapped) best = Math.min(best, beforePrevious[column - 2]! + 1);
      current.push(best);
    }
    beforePrevious = previous;
    previous = current;
  }
  return previous[right.length]!;
}

/** The known name closest to a mistyped one; null where none is near. */
export function closestName(name: string, known: readonly string[]): string | null {
  // Long names are cut: the cost is quadratic, and names come from clients.
  const typed = name.slice(0, 64).toLowerCase();
  let best: string | null = null;
  let bestDistance = Math.max(1, Math.floor(typed.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(typed, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Most names that are suggested where none is close. */
const MAX_ALIKE = 3;

/** Known names that share a word with one that none is close to, the nearest first: --lora-dir and --lora of --lora-dtype. */
export function namesAlike(name: string, known: readonly string[]): string[] {
  const typed = name.slice(0, 64);
  const words = new Set(wordsOf(typed));
  return known
    .map((one) => ({ one, shared: wordsOf(one).filter((word) => words.has(word)).length }))
    .filter(({ shared }) => shared > 0)
    .map((found) => ({ ...found, distance: editDistance(typed.toLowerCase(), found.one.toLowerCase()) }))
    .sort((a, b) => b.shared - a.shared || a.distance - b.distance)
    .slice(0, MAX_ALIKE)
    .map(({ one }) => one);
}

/** Words of a name in any spelling, without the plural's s. */
function wordsOf(name: string): string[] {
  const apart = name.replace(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
  return apart.split(/[^a-z0-9]+/).flatMap((word) => (word.length < 3 ? [] : [word.replace(/s$/, '')]));
}

/** What to say of a name that is none of many: the one that is probably meant, or those like it, or where all are. */
export function hintOf(name: string, known: readonly string[], where: string): string {
  const meant = closestName(name, known);
  if (meant !== null) return `did you mean ${meant}?`;
  const alike = namesAlike(name, known);
  return alike.length === 0 ? `see ${where}.` : `there are ${alike.join(', ')}; see ${where}.`;
}
