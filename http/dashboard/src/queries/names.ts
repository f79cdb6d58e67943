import type { Place } from '../api/client';
import { memberName, useMembers } from './members';
import { useProjects } from './projects';

/** Returns the names of a tenant's members and projects, by id. */
export function useNames(place: () => Place): () => Map<string, string> {
  const members = useMembers(() => place().tenant);
  const projects = useProjects(place);
  return () =>
    new Map([
      ...(members.data ?? []).map((member) => [member.userId, memberName(member)] as const),
      ...(projects.data ?? []).map(({ id, name }) => [id, name] as const),
    ]);
}
