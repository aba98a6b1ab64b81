/** Options of Node.js for a child of this process: its own, but for those of a debugger, which has one port. */
export function childOptions(): string[] {
  return process.execArgv.filter((argument) => !/^--(inspect|debug|watch)/.test(argument));
}
