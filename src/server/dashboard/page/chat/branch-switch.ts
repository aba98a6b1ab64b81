import { el, icon } from '../dom.js';

const BACK = 'M10 3.5L5.5 8l4.5 4.5';
const ON = 'M6 3.5L10.5 8L6 12.5';

/**
 * Shows which version of a message is on the page, and leads to the others; null where there is one alone.
 *
 * @param what the message in words, such as "question"
 */
export function branchSwitch(
  what: string,
  versions: readonly string[],
  shown: string,
  choose: (id: string, isLater: boolean) => void,
): HTMLElement | null {
  if (versions.length < 2) return null;
  const at = versions.indexOf(shown);
  const button = (name: string, path: string, to: number) => {
    const attributes = {
      class: 'button quiet icon',
      type: 'button',
      title: name,
      'aria-label': `${name} of the ${what}`,
      disabled: versions[to] === undefined,
    };
    return el('button', attributes, [icon(path)], { click: () => choose(versions[to]!, to > at) });
  };
  const label = `Version ${at + 1} of ${versions.length} of the ${what}`;
  return el('span', { class: 'branches', role: 'group', 'aria-label': label, 'data-of': what }, [
    button('Earlier version', BACK, at - 1),
    el('span', {}, [`${at + 1}/${versions.length}`]),
    button('Later version', ON, at + 1),
  ]);
}
