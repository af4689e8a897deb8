"""The record of bells only grows, whatever writes to it: held by the database itself.

A bell is never deleted, and of a standing one only its state and its owner (when the person leaves) may change.
Reviews and views are neither changed nor deleted.
"""

from django.db import migrations

FORWARD = """
CREATE FUNCTION safety_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$;
CREATE FUNCTION safety_bell_stands() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.owner_id IS NOT NULL AND NEW.owner_id IS DISTINCT FROM OLD.owner_id
       OR to_jsonb(NEW) - 'state' - 'owner_id' IS DISTINCT FROM to_jsonb(OLD) - 'state' - 'owner_id' THEN
        RAISE EXCEPTION 'a bell that rang stands as it is' USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER bell_never_deleted BEFORE DELETE ON safety_bellevent
    FOR EACH ROW EXECUTE FUNCTION safety_append_only();
CREATE TRIGGER bell_stands BEFORE UPDATE ON safety_bellevent
    FOR EACH ROW EXECUTE FUNCTION safety_bell_stands();
CREATE TRIGGER review_append_only BEFORE UPDATE OR DELETE ON safety_bellreview
    FOR EACH ROW EXECUTE FUNCTION safety_append_only();
CREATE TRIGGER view_append_only BEFORE UPDATE OR DELETE ON safety_bellview
    FOR EACH ROW EXECUTE FUNCTION safety_append_only();
"""
BACKWARD = """
DROP TRIGGER bell_never_deleted ON safety_bellevent;
DROP TRIGGER bell_stands ON safety_bellevent;
DROP TRIGGER review_append_only ON safety_bellreview;
DROP TRIGGER view_append_only ON safety_bellview;
DROP FUNCTION safety_append_only();
DROP FUNCTION safety_bell_stands();
"""


class Migration(migrations.Migration):
    dependencies = [("safety", "0005_referral_editedhelpline")]

    operations = [migrations.RunSQL(FORWARD, BACKWARD)]
