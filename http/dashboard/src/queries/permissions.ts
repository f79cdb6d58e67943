import { type PlatformAct, platformRoleMay, type Role, roleMay, type TenantAct } from '../permissions';
import { usePlace } from '../router/place';
import { usePlatformRole } from './platform';
import { useTenants } from './tenants';

/** The person's role in a tenant: null for none, undefined while it is not known. Call it at a component's start. */
export function useRole(tenant: () => string | undefined): () => Role | null | undefined {
  const tenants = useTenants();
  return () => tenants.data && (tenants.data.find(({ id }) => id === tenant())?.role ?? null);
}

/** Whether the person may do something in the tenant: undefined while that is not known. Call it at a component's start. */
export function useMay(act: TenantAct): () => boolean | undefined {
  const place = usePlace();
  const role = useRole(() => place().tenant);
  return () => {
    const known = role();
    return known === undefined ? undefined : roleMay(known, act);
  };
}

/** Whether the person may do something on the platform. Call it at a component's start. */
export function useMayOnPlatform(act: PlatformAct): () => boolean {
  const role = usePlatformRole();
  return () => platformRoleMay(role(), act);
}
