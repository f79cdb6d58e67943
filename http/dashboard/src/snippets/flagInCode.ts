import type { FlagDetail } from '../queries/flag';

/** A flag that programs evaluate. */
export type FlagInCode = Pick<FlagDetail, 'key' | 'type'> & Partial<Pick<FlagDetail, 'clientSide'>>;
